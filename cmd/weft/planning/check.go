package planning

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/plan"
)

// Read reads a plan and reports everything that is wrong with it for the services
// of a build, their settings included. The plan is nil if it cannot be read.
func Read(source string, text []byte, specs []weft.Spec) (*plan.Plan, error) {
	p, err := plan.Parse(source, text)
	if p == nil {
		return nil, err
	}
	return p, errors.Join(err, config.CheckPlan(p, specs))
}

// Problem is one mistake in a file.
type Problem struct {
	Line    int    `json:"line"` // 0 if it is of no line
	Message string `json:"message"`
}

// In returns the problem as a line that begins with the name of the file.
func (p Problem) In(file string) string {
	if p.Line == 0 {
		return file + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
}

// Problems splits an error of several lines, which name a source and a line of it,
// in the order of lines.
func Problems(source string, err error) (list []Problem) {
	for line := range strings.Lines(err.Error()) {
		p := Problem{Message: strings.TrimSuffix(strings.TrimRight(line, "\n"), ";")}
		p.Message = strings.TrimPrefix(p.Message, source+": ")
		if rest, ok := strings.CutPrefix(p.Message, source+":"); ok {
			if number, text, ok := strings.Cut(rest, ": "); ok {
				if n, err := strconv.Atoi(number); err == nil {
					p = Problem{n, text}
				}
			}
		}
		if !slices.Contains(list, p) { // reading and checking find some alike
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return a.Line - b.Line })
	return list
}
