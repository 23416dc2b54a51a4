package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/cmd/weft/planner"
)

// drawSizeCommand draws what weft size has found, for weft size --plot.
func drawSizeCommand() *cobra.Command {
	return &cobra.Command{
		Use: planner.DrawSize + " FORMAT", Short: "Draw the report of weft size on standard input", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r planner.SizeReport
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&r); err != nil {
				return err
			}
			return figure.Save(cmd.OutOrStdout(), args[0], []figure.Figure{sizeFigure(&r)}, nil)
		},
	}
}

// sizeFigure is the curve of weft size.
func sizeFigure(r *planner.SizeReport) figure.Figure {
	panel := figure.Panel{X: figure.Axis{Label: "instances"}, Y: figure.Axis{Label: r.Of + " time of a packet, ms"},
		Marks: []figure.Mark{{X: float64(r.Best.N), Text: "best"}}}
	at := map[string]int{}
	for _, p := range r.Curve {
		name := fmt.Sprintf("%s, %d processors", p.As, p.CPUs)
		switch {
		case p.CPUs == p.N && p.N > 1:
			name = p.As + ", a processor each"
		case p.CPUs == 1:
			name = p.As + ", one processor"
		}
		i, there := at[name]
		if !there {
			i = len(panel.Series)
			at[name] = i
			panel.Series = append(panel.Series, figure.Series{Name: name, Kind: figure.Line, Colour: i/2 + 1},
				figure.Series{Name: name + ", formula", Kind: figure.Curve, Colour: i/2 + 1, Dashed: true})
		}
		point := figure.Point{X: float64(p.N), Y: figure.Number(p.Time())}
		if p.CIMS != nil {
			point.CI95 = []float64{p.Time() - *p.CIMS, p.Time() + *p.CIMS}
		}
		panel.Series[i].Points = append(panel.Series[i].Points, point)
		if point.CI95, point.Y = nil, figure.Number(math.NaN()); p.FormulaMS != nil {
			point.Y = figure.Number(*p.FormulaMS)
		}
		panel.Series[i+1].Points = append(panel.Series[i+1].Points, point)
	}
	title := fmt.Sprintf("%g packets/s: %d as %s on %d processors", r.Rate, r.Best.N, r.Best.As, r.Best.CPUs)
	return figure.Figure{Name: "weft size", Title: title, Panels: []figure.Panel{panel}}
}
