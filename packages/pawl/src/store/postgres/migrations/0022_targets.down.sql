drop table pawl.target_secret, pawl.target;
