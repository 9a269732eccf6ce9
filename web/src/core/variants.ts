/** GET /api/v1/models/variants: what a repository has to download. */
export interface Variant {
	quantization: string;
	format: string;
	bits?: number | null;
	size_bytes: number;
	fits_memory: boolean | null;
	fits_disk: boolean | null;
	downloaded: boolean;
	recommended: boolean;
}

export interface Variants {
	model: string;
	repository: string;
	url: string;
	variants: Variant[];
}
