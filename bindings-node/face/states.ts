interface Lifespan {
    start: () => unknown;
    stop?: (state: any) => unknown;
}

/** @internal The lifespans of a server that serves and of those within it: begun in that order, ended in reverse. */
export class States {
    readonly #begun: { server: object; lifespan: Lifespan | undefined; state: unknown }[] = [];

    /** If one does not begin, those that have begun end. */
    static async start(servers: readonly { lifespan: Lifespan | undefined }[]): Promise<States> {
        const states = new States();
        try {
            for (const server of servers) {
                const { lifespan } = server;
                states.#begun.push({ server, lifespan, state: await lifespan?.start() });
            }
            return states;
        } catch (error) {
            await states.end().catch(() => {});
            throw error;
        }
    }

    of(server: object): unknown {
        return this.#begun.find(begun => begun.server === server)?.state;
    }

    /** Ends all, then rejects with the first failure. */
    async end(): Promise<void> {
        const failed: unknown[] = [];
        for (const { lifespan, state } of this.#begun.splice(0).reverse())
            try {
                await lifespan?.stop?.(state);
            } catch (error) {
                failed.push(error);
            }
        if (failed.length > 0) throw failed[0];
    }
}
