/** Whose jobs are those that Pawl itself makes, purges among them: nobody purges it, so that no purge comes upon itself. */
export const OWN_TENANT = "pawl";
