-- When the broker deletes a vGPU, and the labels of its creator, a line KEY=VALUE for each; before, there were neither.
alter table vgpu add column expires timestamp with time zone;
alter table vgpu add column labels varchar(4096) default '' not null;
