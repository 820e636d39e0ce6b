/** Returns the access token of the signed-in user, from the library of your identity provider. The sandbox needs none. */
export const accessToken = async (): Promise<string | undefined> => undefined;
