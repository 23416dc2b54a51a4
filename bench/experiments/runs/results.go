package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/test/measure"
)

// Bounds of what is read and shown of a summary.
const (
	mostSummary = 64 << 20
	mostPoints  = 2000
)

// summary is what an experiment has written of itself.
type summary struct {
	Title      string                 `json:"title"`
	Paper      string                 `json:"paper"`
	Claim      string                 `json:"claim"`
	Method     string                 `json:"method"`
	Deviation  string                 `json:"deviation"`
	Samples    int                    `json:"samples"`
	Rounds     experiments.Rounds     `json:"rounds"`
	Parameters experiments.Parameters `json:"parameters"`
	Machine    measure.Machine        `json:"machine"`
	Conditions measure.Conditions     `json:"conditions"`
	Failed     []experiments.Failed   `json:"failed"`
	Plots      []figure.Figure        `json:"plots"`
	Claims     []struct {
		Figure     string            `json:"figure"`
		What       string            `json:"what"`
		Paper      string            `json:"paper"`
		Value      float64           `json:"paper_value"`
		Tolerance  float64           `json:"tolerance"`
		Ours       *float64          `json:"ours"`
		CI95       []float64         `json:"ci95"`
		N          uint32            `json:"n"`
		Unit       string            `json:"unit"`
		Reproduced string            `json:"reproduced"`
		Mark       *experiments.Mark `json:"mark"`
		Met        string            `json:"met"`
		Cause      string            `json:"cause"`
	} `json:"claims"`
}

// readSummary reads the summary of an experiment below a folder; nil if there is
// none.
func readSummary(dir, experiment string) (*summary, error) {
	file := filepath.Join(dir, experiment, "summary.json")
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > mostSummary {
		return nil, api.Errorf(codes.ResourceExhausted, "%s has %d octets; at most %d are read", file, info.Size(), mostSummary)
	}
	b, err := asowner.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &summary{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w; run it again", file, err)
	}
	return s, nil
}

// toAPI returns it as clients see it.
func (s *summary) toAPI() *api.ExperimentResults {
	out := &api.ExperimentResults{
		Paper: s.Paper, Claim: plain(s.Claim), Method: plain(s.Method), Deviation: plain(s.Deviation), Samples: uint32(s.Samples),
		Machine: s.Machine.String(), Conditions: s.Conditions.String(), Disturbed: s.Conditions.Disturbed, Build: s.Parameters.Build,
	}
	for _, c := range s.Claims {
		claim := &api.ExperimentClaim{Figure: c.Figure, What: c.What, Paper: c.Paper, Ours: c.Ours, Ci95: c.CI95, Unit: c.Unit,
			Verdict: c.Reproduced, Tolerance: c.Tolerance, Count: c.N, Reproduced: c.Reproduced, Met: c.Met, Cause: c.Cause}
		if c.Reproduced == experiments.VerdictNotAsked {
			claim.Verdict = c.Met
		}
		if c.Value != 0 {
			claim.PaperValue = &c.Value
		}
		if c.Mark != nil {
			claim.AtMost, claim.AtLeast = c.Mark.AtMost, c.Mark.AtLeast
		}
		out.Claims = append(out.Claims, claim)
	}
	for _, f := range s.Plots {
		out.Figures = append(out.Figures, figureToAPI(f))
	}
	for _, f := range s.Failed {
		out.Failed = append(out.Failed, &api.ExperimentFailure{Case: f.Case, Round: uint32(f.Round), Error: f.Error})
	}
	return out
}

func figureToAPI(f figure.Figure) *api.ExperimentFigure {
	out := &api.ExperimentFigure{Name: f.Name, Title: f.Title, Notes: f.Notes}
	for _, p := range f.Panels {
		panel := &api.ExperimentPanel{Title: p.Title, X: axisToAPI(p.X), Y: axisToAPI(p.Y)}
		for _, s := range p.Series {
			panel.Series = append(panel.Series, seriesToAPI(s))
		}
		for _, m := range p.Marks {
			panel.Marks = append(panel.Marks, &api.ExperimentMark{X: m.X, Text: m.Text})
		}
		if p.Heat != nil {
			panel.Heat = &api.ExperimentHeat{Rows: p.Heat.Rows}
			for _, texts := range p.Heat.Texts {
				panel.Heat.Values = append(panel.Heat.Values, &api.ExperimentHeatRow{Texts: texts})
			}
		}
		out.Panels = append(out.Panels, panel)
	}
	return out
}

func axisToAPI(a figure.Axis) *api.ExperimentAxis {
	return &api.ExperimentAxis{Label: a.Label, Names: a.Names, Log: a.Log, Max: a.Max}
}

// seriesToAPI returns a series: of many points, some at equal distances and the
// last.
func seriesToAPI(s figure.Series) *api.ExperimentSeries {
	out := &api.ExperimentSeries{Name: s.Name, Kind: string(s.Kind), Colour: uint32(max(s.Colour, 0)), Dashed: s.Dashed, Hollow: s.Hollow, Source: s.Source}
	step := max((len(s.Points)+mostPoints-2)/(mostPoints-1), 1)
	for i, p := range s.Points {
		if i%step != 0 && i != len(s.Points)-1 {
			continue
		}
		point := &api.ExperimentPoint{X: p.X, Ci95: p.CI95}
		if y := float64(p.Y); !math.IsNaN(y) {
			point.Y = &y
		}
		out.Points = append(out.Points, point)
	}
	return out
}

// plot draws a figure of a run, by its number, or all of them.
func (s *summary) plot(which string) ([]byte, error) {
	list := s.Plots
	if which != "all" {
		n, err := strconv.Atoi(which)
		if err != nil || n < 1 || n > len(list) {
			return nil, api.Errorf(codes.NotFound, "plot %q: want a number from 1 to %d, or all", which, len(list))
		}
		list = list[n-1 : n]
	}
	if len(list) == 0 {
		return nil, api.Errorf(codes.NotFound, "the experiment draws no figure")
	}
	quick := ""
	if s.Parameters.Quick {
		quick = "Quick run: "
	}
	var b bytes.Buffer
	err := figure.Save(&b, "svg", list, []string{
		fmt.Sprintf("%s: Weft on %s.", s.Parameters.Experiment, s.Machine),
		fmt.Sprintf("Conditions: %s.", s.Conditions),
		quick + s.Rounds.Caption(),
	})
	return b.Bytes(), err
}

// earlier is what is known of a result that weft experiment run has left in the
// data folder itself.
type earlier struct {
	written time.Time
	run     *api.ExperimentRun
}

// onCommandLine returns the results that weft experiment run has left in the data
// folder, as runs named as their experiments. Locked.
func (s *Server) onCommandLine() (list []*api.ExperimentRun) {
	for _, e := range s.All {
		info, err := os.Stat(filepath.Join(s.Dir, e.Name, "summary.json"))
		if err != nil {
			delete(s.old, e.Name)
			continue
		}
		known := s.old[e.Name]
		if known.run == nil || !known.written.Equal(info.ModTime()) {
			sum, err := readSummary(s.Dir, e.Name)
			if sum == nil || err != nil {
				continue
			}
			known = earlier{info.ModTime(), &api.ExperimentRun{
				Run: e.Name, Experiment: e.Name, Title: e.Title, State: done, Quick: sum.Parameters.Quick, Rounds: uint32(sum.Rounds.Most),
				Created: stamp(sum.Conditions.Date), Started: stamp(sum.Conditions.Date), Ended: stamp(info.ModTime()), Results: true,
				Seconds: max(info.ModTime().Sub(sum.Conditions.Date).Seconds(), 0), Done: uint32(sum.Samples), Total: uint32(sum.Samples),
			}}
			s.old[e.Name] = known
		}
		list = append(list, known.run)
	}
	return list
}
