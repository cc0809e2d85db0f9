/** Receives the answer to one POST. */
export interface Answering {
    head(status: number, headers: Record<string, string>): void;
    write(text: string): void;
    end(text?: string): void;
}
