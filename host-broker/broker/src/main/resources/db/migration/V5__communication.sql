-- With whom the workers of a vGPU exchange data; before, they were alone.
alter table vgpu add column communication varchar(16) default 'none' not null;
