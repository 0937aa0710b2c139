-- Whether the broker may move a vGPU's memory to the host; before, it never did.
alter table vgpu add column swappable boolean default false not null;
