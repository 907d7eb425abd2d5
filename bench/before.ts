/**
 * The commit that the whole redesign is measured against: the last one before "The house, first half". It stays the same until
 * every issue of that wave has ended, so that small losses cannot add up unseen.
 */
export const BEFORE = "HEAD";
