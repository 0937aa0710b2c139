package io.hawser.gpu.software.exec;

/**
 * Linear filtering across the edges of a cube's faces. A texel beyond an edge is the one of the neighbouring face that
 * touches the edge there. At a corner of the cube three faces meet, so the fourth texel's weight goes to the others.
 */
final class CubeEdges {
    private CubeEdges() {
    }

    /**
     * Replaces the texels outside of a face.
     *
     * @param slice first slice of the cube.
     * @param x column of the first of the four texels, -1 to the last.
     * @param y row of the first of the four texels.
     */
    static void cross(Globals g, Texture t, TexelLevel texels, int slice, int face, int x, int y, long[] corner,
        float[] weight) {
        int size = texels.width();
        int absent = -1;
        for (int i = 0; i < 4; i++) {
            int column = x + (i & 1);
            int row = y + (i >> 1);
            boolean isBeside = column < 0 || column >= size;
            boolean isAbove = row < 0 || row >= size;
            if (isBeside && isAbove) {
                absent = i;
            } else if (isBeside || isAbove) {
                corner[i] = neighbour(g, t, texels, slice, face, column, row);
            }
        }
        if (absent >= 0) {
            float share = weight[absent] / 3;
            for (int i = 0; i < 4; i++) {
                weight[i] = i == absent ? 0 : weight[i] + share;
            }
        }
    }

    /**
     * The texel beyond an edge. Centres of texels have odd coordinates between -size and size; the faces lie at both
     * ends.
     */
    private static long neighbour(Globals g, Texture t, TexelLevel texels, int slice, int face, int column, int row) {
        int size = texels.width();
        int across = 2 * column + 1 - size;
        int down = 2 * row + 1 - size;
        int inner = size - 1; // the last centre of a face, next to the edge
        int out = Math.clamp(across, -inner, inner) == across ? down : across;
        // A point on the neighbouring face: the coordinate that left this face is at the end, and this face's own
        // coordinate moves to the texel next to the edge.
        int main = (face & 1) == 0 ? inner : -inner;
        int a = out == across ? Integer.signum(across) * size : across;
        int d = out == down ? Integer.signum(down) * size : down;
        int px = switch (face >> 1) {
            case 0 -> main;
            case 1 -> a;
            default -> face == 4 ? a : -a;
        };
        int py = (face >> 1) == 1 ? main : -d;
        int pz = switch (face) {
            case 0 -> -a;
            case 1 -> a;
            case 2 -> d;
            case 3 -> -d;
            default -> main;
        };
        int next = Math.abs(px) == size ? px > 0 ? 0 : 1 : Math.abs(py) == size ? py > 0 ? 2 : 3 : pz > 0 ? 4 : 5;
        int nextAcross = switch (next) {
            case 0 -> -pz;
            case 1 -> pz;
            case 5 -> -px;
            default -> px;
        };
        int nextDown = next == 2 ? pz : next == 3 ? -pz : -py;
        return TextureUnit.faceTexel(g, t, texels, (nextAcross + inner) / 2, (nextDown + inner) / 2, slice + next);
    }
}
