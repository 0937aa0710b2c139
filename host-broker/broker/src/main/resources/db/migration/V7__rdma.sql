-- Whether sessions of a vGPU may use RDMA; before, none did.
alter table vgpu add column rdma boolean default false not null;
