-- What an operator has made, for H2 and PostgreSQL alike. Names of GPUs, carriers and places are lists with commas.

create table vgpu (
    name varchar(63) primary key,
    id varchar(36) not null unique,
    owner_kind varchar(8) not null,
    owner_id varchar(256) not null,
    memory_bytes bigint not null,
    compute_share integer not null,
    sharing varchar(16) not null,
    gpus varchar(2048) not null,
    carriers varchar(64) not null,
    max_sessions integer not null,
    origin varchar(16) not null,
    created timestamp with time zone not null,
    changed timestamp with time zone not null,
    placed varchar(4096) not null
);

create table token (
    key_id varchar(64) primary key,
    vgpu varchar(63) not null references vgpu (name) on delete cascade,
    digest varchar(64) not null,
    note varchar(200) not null,
    created timestamp with time zone not null,
    expires timestamp with time zone,
    last_used timestamp with time zone
);

create index token_of_vgpu on token (vgpu);

-- What has been done once and is not done again, such as making the first vGPU, which may have been deleted since.
create table done (
    what varchar(64) primary key
);
