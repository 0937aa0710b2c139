-- Each kind of entry has its own room; AuditKind has the same rule.
alter table audit add column kind varchar(16) default 'act' not null;
update audit set kind = case
    when role = '' then 'stranger'
    when action in ('login', 'logout') then 'login'
    when outcome = 'refused' or role not in ('operator', 'admin') then 'refused'
    else 'act'
end;
create index audit_of_kind on audit (kind, seq);
