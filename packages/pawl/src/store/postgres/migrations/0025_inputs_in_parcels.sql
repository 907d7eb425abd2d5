-- oldest: 18
-- The inputs of a parcel's jobs, in their order, where they are small and there is nothing else a worker must know of the
-- jobs: whoever claims the parcel need not look each of them up. Null: look. All but the largest stay in their page.
alter table pawl.parcel add column inputs json[];
alter table pawl.parcel alter column inputs set storage external;
alter table pawl.parcel set (toast_tuple_target = 8160);
