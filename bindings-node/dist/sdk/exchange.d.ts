/** Where the answer of one POST goes. */
export interface Answering {
    head(status: number, headers: Record<string, string>): void;
    write(text: string): void;
    end(text?: string): void;
}
