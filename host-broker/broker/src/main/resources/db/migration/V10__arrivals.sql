-- vGPUs on their way to another broker. Whoever deletes the row decides: the old broker that gives the vGPU away, in the
-- transaction that does so, or the new one that gives up.
create table arrival (
    id varchar(36) primary key,
    broker varchar(36) not null
);
