-- oldest: 18
-- The same as `inputs` where some of a parcel's jobs have options: the inputs of all, then the options of all, null where one has none.
-- In a column of its own: whoever knows `inputs` only finds none there, and looks the jobs up.
alter table pawl.parcel add column facts json[];
alter table pawl.parcel alter column facts set storage external;
