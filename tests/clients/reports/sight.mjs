// How far apart colours are for those who see fewer of them. Sources: Machado, Oliveira and Fernandes (2009), severity 1, for
// the three kinds of dichromacy; Ottosson's Oklab for distances; WCAG 2 for contrast.
const VISIONS = {
    normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, value, index) => sum + value * vector[index], 0));

/** Linear red, green and blue of "#rrggbb". */
function light(colour) {
    const share = (at) => parseInt(colour.slice(at, at + 2), 16) / 255;
    return [1, 3, 5].map(share).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
}

function oklab(rgb) {
    const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb.map((value) => Math.max(0, value)));
    return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones.map(Math.cbrt));
}

/** The distance of the two colours that are nearest, by vision. */
export function nearest(colours) {
    const least = (matrix) => {
        const seen = colours.map((colour) => oklab(times(matrix, light(colour))));
        return Math.min(...seen.flatMap((one, index) => seen.slice(0, index).map((other) => Math.hypot(...one.map((value, axis) => value - other[axis])))));
    };
    return Object.fromEntries(Object.entries(VISIONS).map(([vision, matrix]) => [vision, least(matrix)]));
}

export function contrast(one, other) {
    const [low, high] = [one, other].map((colour) => times([[0.2126, 0.7152, 0.0722]], light(colour))[0]).sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
}
