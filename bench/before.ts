/**
 * The commit that the whole redesign is measured against: the last one before "The house, first half". It stays the same until
 * every issue of that wave has ended, so that small losses cannot add up unseen.
 */
export const BEFORE = "246192b2cb7340ee072d906c2367e5245ae18482";
