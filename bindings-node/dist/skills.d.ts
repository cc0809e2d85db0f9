import type { Resource } from './protocol';
import type { RequestOptions } from './requests';
/** A skill as the server lists it. */
export interface Skill {
    /** Where its manifest is. */
    uri: string;
    /** The frontmatter of the manifest. */
    frontmatter: {
        name: string;
        description: string;
        [more: string]: unknown;
    };
    /** Its files; `dynamic` when they are not known beforehand, and so cannot be verified. */
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
 * The skills of a server (2026-07-28): folders of instructions for models. Nothing of a skill is read before it is asked
 * for, and nothing is given that is not what the skill's entry says: then these fail with `ERR_MCP_BAD_ANSWER`.
 */
export declare class Skills {
    #private;
    /** What there is, all pages. */
    list(options?: Options): Promise<Skill[]>;
    /** The skill whose manifest is at that URI. */
    get(uri: string, options?: Options): Promise<Skill>;
    /** Reads the manifest of a skill: the instructions, for when the model is to use it. */
    load(skill: Skill, options?: Options): Promise<string>;
    /** Reads a file of a skill. */
    read(skill: Skill, uri: string, options?: Options): Promise<Uint8Array>;
    /** What lies directly in a folder of a skill: files, and folders of the MIME type `inode/directory`. */
    folder(uri: string, options?: Options): Promise<Resource[]>;
}
export {};
