/** What brought a request over HTTP. */
export interface Head {
    method: string;
    target: string;
    headers: [string, string][];
    session?: string;
    auth?: unknown;
}
