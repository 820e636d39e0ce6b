/** The access token of who is signed in, from the library of your identity provider. The sandbox needs none. */
export const accessToken = async (): Promise<string | undefined> => undefined;
