drop table pawl.reply, pawl.audit, pawl.audit_head, pawl.api_secret, pawl.api_key, pawl.api_key_mark;
drop function pawl.append_only();
drop function pawl.api_secret_good(text, text);
