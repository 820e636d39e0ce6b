// Defects that the auditor has to find: small patches of the real classes.

export const planted = [];
