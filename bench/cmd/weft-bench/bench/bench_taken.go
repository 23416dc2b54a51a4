package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/test/measure"
)

// benchTaken is what every report says of how its figures were taken.
type benchTaken struct {
	Machine    measure.Machine     `json:"machine"`
	Conditions *measure.Conditions `json:"conditions"`
}

// begin looks at the machine before anything is measured; differs is what is set
// otherwise than a user gets it.
func (t *benchTaken) begin(differs ...string) {
	t.Machine, t.Conditions = measure.ThisMachine(), measure.Begin(run.Build().Version, differs...)
}

func (t *benchTaken) end() { t.Conditions.End() }

// writeTaken prints machine and conditions.
func (t *benchTaken) writeTaken(w io.Writer) error {
	if t.Conditions == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "%v; %v\n", t.Machine, t.Conditions)
	return err
}

// differs is what dividing the processors changes.
func (c benchCPUs) differs() []string {
	if c.subject < 0 {
		return nil
	}
	return []string{fmt.Sprintf("controller on processor %d alone, load on processor %d", c.subject, c.load)}
}

// benchCI95 has the 95 % interval of figures, by their names in JSON: lowest and
// highest, nil where there are too few rounds.
type benchCI95 map[string][]float64

// text writes the interval of a figure.
func (c benchCI95) text(figure string, number func(float64) string) string {
	return benchInterval(c[figure], number)
}

// benchInterval writes an interval, - if it is not known.
func benchInterval(ci95 []float64, number func(float64) string) string {
	if len(ci95) < 2 {
		return "-"
	}
	return number(ci95[0]) + " to " + number(ci95[1])
}

// benchTwo writes a number with two digits after the point.
func benchTwo(v float64) string { return fmt.Sprintf("%.2f", v) }

var nan = math.NaN()

// benchNumber returns v, 0 for what is none: JSON has no other number for it.
func benchNumber(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// benchNumbers returns the values that are numbers.
func benchNumbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// benchShell runs a command to its end and returns what it said. If it is ended
// early, so is all that it started.
func benchShell(ctx context.Context, timeout time.Duration, command string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v", timeout)
	}
	return string(b), err
}

// benchLastLine returns the last line that says something.
func benchLastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}
