import { begunWithin, External, Front, type Ends } from './chain';
import { guarded } from './errors';
import type { HookRunner } from './hooks';
import { native, type NativeExternal, type NativeFront } from './native';
import type { Server } from './server';

/** The server itself, as the first server of its front. */
class Own extends External {
    constructor(private readonly server: Server<any>) {
        super(server);
    }

    override leadsTo(target: Front | Server<any>): boolean {
        return target === this.server;
    }

    protected override reached(_: HookRunner, ends: Ends): Promise<NativeExternal> {
        return begunWithin(this.server, this.name, '{}', true, ends);
    }
}

/** @internal A front that stands for a server: before the server itself and the external servers that are mounted in it. */
export class ServerFront extends Front {
    constructor(private readonly server: Server<any>) {
        super(new Own(server), { onError: (error, what) => server.failures.report(error, what) });
        guarded(() => server.entries.standBehindFront());
    }

    override async made(runner: HookRunner, ends: Ends): Promise<NativeFront> {
        const externals = await this.ends(runner, ends);
        return guarded(() => native.frontForServer(externals, this.server.entries));
    }
}
