// Images for models: read, and made smaller where they are larger than a model or the server needs.

import { texts } from "../texts";

export const mostImages = 16; // in a question
const longestSide = 2048; // pixels; models see less
const largestFile = 4 << 20; // bytes
const kinds = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

/** Returns an image as a data URL. The error says what is wrong with the file. */
export async function readImage(file: File): Promise<string> {
	let bitmap: ImageBitmap;
	try {
		bitmap = await createImageBitmap(file); // turned as the camera was held: the server doesn't look at that
	} catch {
		throw new Error(texts.files.imageBrowserCanRead(file.name || texts.files.theFile));
	}
	try {
		const scale = Math.min(1, longestSide / Math.max(bitmap.width, bitmap.height));
		const keeps = scale === 1 && file.size <= largestFile && kinds.includes(file.type) && file.type !== "image/jpeg";
		return await (keeps ? dataURL(file) : redrawn(bitmap, scale, file.type));
	} finally {
		bitmap.close();
	}
}

async function redrawn(bitmap: ImageBitmap, scale: number, kind: string): Promise<string> {
	const canvas = new OffscreenCanvas(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
	const context = canvas.getContext("2d");
	if (!context) throw new Error(texts.files.browserMakeImageSmaller);
	context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
	const isPhoto = kind === "image/jpeg";
	let blob = await canvas.convertToBlob(isPhoto ? { type: "image/jpeg", quality: 0.92 } : { type: "image/png" });
	if (blob.size > largestFile) {
		// A photo in PNG: what was transparent becomes white.
		context.globalCompositeOperation = "destination-over";
		context.fillStyle = "#fff";
		context.fillRect(0, 0, canvas.width, canvas.height);
		blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
	}
	return dataURL(blob);
}

export function dataURL(blob: Blob): Promise<string> {
	return new Promise((resolve, reject) => {
		const reader = new FileReader();
		reader.onload = () => resolve(String(reader.result));
		reader.onerror = () => reject(new Error(texts.files.fileRead));
		reader.readAsDataURL(blob);
	});
}

/** Returns the files that were pasted or dropped. */
export function filesIn(data: DataTransfer | null): File[] {
	return [...(data?.files ?? [])];
}
