import type { Connection } from './connection';
import type { NativeLink } from './native';
import type { Resource } from './protocol';
import type { RequestOptions } from './requests';

/** A skill as the server lists it. */
export interface Skill {
    /** The URI of its manifest. */
    uri: string;
    /** The frontmatter of the manifest. */
    frontmatter: { name: string; description: string; [more: string]: unknown };
    /** Its files; `dynamic` if they are not known in advance, and so cannot be verified. */
    resources: SkillFile[] | 'dynamic';
}

/** One file of a skill. */
export interface SkillFile {
    uri: string;
    /** `sha256:` and 64 hexadecimal digits. */
    digest: string;
    size: number;
}

type Options = Pick<RequestOptions, 'signal'>;

/**
 * The skills of a server (2026-07-28): folders of instructions for models. The client reads nothing before it is asked
 * for, and verifies what it reads against the skill's entry: a mismatch rejects with `ERR_MCP_BAD_ANSWER`.
 */
export class Skills {
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection) {
        this.#connection = connection;
    }

    /** Lists the skills, all pages. */
    list(options?: Options): Promise<Skill[]> {
        return this.#wait(link => link.listSkills(), options);
    }

    /** Fetches the entry of the skill whose manifest is at that URI. */
    get(uri: string, options?: Options): Promise<Skill> {
        return this.#wait(link => link.skill(uri), options);
    }

    /** Reads the manifest of a skill: the instructions, to be read when the model uses the skill. */
    load(skill: Skill, options?: Options): Promise<string> {
        return this.#wait(link => link.loadSkill(JSON.stringify(skill)), options);
    }

    /** Reads a file of a skill. */
    async read(skill: Skill, uri: string, options?: Options): Promise<Uint8Array> {
        const base64 = await this.#wait<string>(link => link.readSkillFile(JSON.stringify(skill), uri), options);
        return Buffer.from(base64, 'base64');
    }

    /** Lists the direct contents of a folder: files, and folders with the MIME type `inode/directory`. */
    folder(uri: string, options?: Options): Promise<Resource[]> {
        return this.#wait(link => link.readFolder(uri), options);
    }

    #wait<Result>(begin: (link: NativeLink) => number, options: Options | undefined): Promise<Result> {
        return this.#connection.requests.wait(begin, options);
    }
}
