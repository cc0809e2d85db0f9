import type { Policy } from './definitions';
import { guarded } from './errors';
import { native } from './native';
import type { NativePermissions } from './native';

/**
 * Says what permissions allow, by the rules of `policy.permissions`: only named items are allowed, and `denied` takes
 * precedence. URIs are normalised before they are matched; one with a `..` segment is never allowed.
 */
export class PermissionManager {
    readonly #permissions: NativePermissions;

    /** Throws `ERR_MCP_MISUSE` if `config` does not have the shape of `policy.permissions`. */
    constructor(config: NonNullable<Policy['permissions']>) {
        this.#permissions = guarded(() => new native.Permissions(JSON.stringify(config)));
    }

    /** Whether a resource may be read. */
    canAccessResource(uri: string): boolean {
        return this.#permissions.mayRead(uri);
    }

    /** Whether a tool may be called. */
    canExecuteTool(tool: string): boolean {
        return this.#permissions.mayCall(tool);
    }
}
