/** The parts of Apache ECharts that figures need, in a separate chunk, which loads when the first figure is drawn. */
import { CustomChart } from "echarts/charts";
import { GridComponent } from "echarts/components";
import { graphic, init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

use([CustomChart, GridComponent, CanvasRenderer, SVGRenderer]);

/** Pairs of coordinates in pixels; a pair that is not finite ends one line, and the next begins another. */
interface Points {
  points: Float64Array;
}

graphic.registerShape(
  "weft-lines",
  graphic.extendShape({
    shape: { points: new Float64Array(0), closed: false },
    buildPath(context: CanvasRenderingContext2D, { points, closed }: Points & { closed: boolean }) {
      let drawing = false;
      for (let i = 0; i < points.length; i += 2) {
        const [x, y] = [points[i]!, points[i + 1]!];
        if (Number.isNaN(x)) {
          if (drawing && closed) context.closePath();
          drawing = false;
        } else if (drawing) {
          context.lineTo(x, y);
        } else {
          context.moveTo(x, y);
          drawing = true;
        }
      }
      if (drawing && closed) context.closePath();
    },
  }),
);

graphic.registerShape(
  "weft-dots",
  graphic.extendShape({
    shape: { points: new Float64Array(0), radius: 3 },
    buildPath(context: CanvasRenderingContext2D, { points, radius }: Points & { radius: number }) {
      for (let i = 0; i < points.length; i += 2) {
        context.moveTo(points[i]! + radius, points[i + 1]!);
        context.arc(points[i]!, points[i + 1]!, radius, 0, 2 * Math.PI);
      }
    },
  }),
);

export { init };
