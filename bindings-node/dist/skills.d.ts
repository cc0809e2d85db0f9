import type { Resource } from './protocol';
import type { RequestOptions } from './requests';
/** A skill as the server lists it. */
export interface Skill {
    /** The URI of its manifest. */
    uri: string;
    /** The frontmatter of the manifest. */
    frontmatter: {
        name: string;
        description: string;
        [more: string]: unknown;
    };
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
export declare class Skills {
    #private;
    /** Lists the skills, all pages. */
    list(options?: Options): Promise<Skill[]>;
    /** Fetches the entry of the skill whose manifest is at that URI. */
    get(uri: string, options?: Options): Promise<Skill>;
    /** Reads the manifest of a skill: the instructions, to be read when the model uses the skill. */
    load(skill: Skill, options?: Options): Promise<string>;
    /** Reads a file of a skill. */
    read(skill: Skill, uri: string, options?: Options): Promise<Uint8Array>;
    /** Lists the direct contents of a folder: files, and folders with the MIME type `inode/directory`. */
    folder(uri: string, options?: Options): Promise<Resource[]>;
}
export {};
