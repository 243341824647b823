/** A picture that both wire protocols take. */
export interface Image {
  readonly mediaType: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  readonly width: number;
  readonly height: number;
}

/** What a file that begins with these bytes is a picture of by its own words; undefined for what is none. */
export function imageType(head: Buffer): Image["mediaType"] | undefined {
  const text = head.toString("latin1", 0, 12);
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(text)) return "image/gif";
  return text.startsWith("RIFF") && text.endsWith("WEBP") ? "image/webp" : undefined;
}

/** Undefined for a file that is damaged: a provider would refuse the whole request for it. */
export function readImage(bytes: Buffer): Image | undefined {
  const mediaType = imageType(bytes);
  const size = mediaType && sizeOf(bytes, mediaType);
  if (mediaType === undefined || size === undefined) return undefined;
  const [width, height] = size;
  return width > 0 && height > 0 ? { mediaType, width, height } : undefined;
}

type Size = readonly [width: number, height: number];

function sizeOf(bytes: Buffer, mediaType: Image["mediaType"]): Size | undefined {
  if (bytes.length < 30) return undefined;
  switch (mediaType) {
    case "image/png":
      return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    case "image/gif":
      return [bytes.readUInt16LE(6), bytes.readUInt16LE(8)];
    case "image/jpeg":
      return sizeOfJpeg(bytes);
    case "image/webp":
      return sizeOfWebp(bytes);
    default:
      return mediaType satisfies never;
  }
}

/** In the frame header, behind segments that each say how long they are. */
function sizeOfJpeg(bytes: Buffer): Size | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)];
    // A byte that only fills up, and a marker without a length of its own.
    at += marker === 0xff ? 1 : 2 + (marker === 0x01 ? 0 : bytes.readUInt16BE(at + 2));
  }
  return undefined;
}

function sizeOfWebp(bytes: Buffer): Size | undefined {
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff];
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1];
    }
    case "VP8X":
      return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1];
    default:
      return undefined;
  }
}
