-- A pool of brokers that share the database. A single broker leaves the tables empty and the columns at their defaults.
create table broker (
    id varchar(36) primary key,
    number integer not null unique,
    name varchar(63) not null unique,
    epoch bigint not null,
    heartbeat timestamp with time zone not null,
    applied bigint not null,
    guest varchar(300) not null,
    guest_tls varchar(300) not null,
    http varchar(300) not null,
    version varchar(64) not null,
    gpus varchar(1000000) not null,
    picture varchar(1000000) default '' not null
);
-- The keys of changed vGPUs and tokens. Revisions have no gaps and have the order of the commits.
create table pool_log (
    revision bigint primary key,
    stamp bigint not null,
    kind varchar(8) not null,
    name varchar(64) not null
);
-- Acts that another broker must execute.
create table act (
    id varchar(36) primary key,
    broker varchar(36) not null,
    asked timestamp with time zone not null,
    request varchar(100000) not null,
    begun boolean default false not null,
    answer varchar(100000)
);
create index act_of_broker on act (broker);
-- The vGPU's broker; null for none, as for all vGPUs of a broker with H2.
alter table vgpu add column broker varchar(36);
-- Whether the vGPU may have sessions or a region at its broker.
alter table vgpu add column in_use boolean default false not null;
-- The least schema version of a broker that may use the database. A migration that an older broker must not meet raises
-- it; all others leave it, so that brokers of two neighbouring versions share the database.
create table schema_rule (
    least integer not null
);
insert into schema_rule (least) values (9);
