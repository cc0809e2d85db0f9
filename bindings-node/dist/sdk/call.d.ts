/** The HTTP request that brought a call. */
export interface Head {
    method: string;
    target: string;
    headers: [string, string][];
    session?: string;
    auth?: unknown;
}
