package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
)

// UnknownPlan says that there is no plan of a name: a command called wrongly.
type UnknownPlan struct{ name string }

func (e *UnknownPlan) Error() string {
	return fmt.Sprintf("no plan %q: it is neither built in (%s) nor a file%s", e.name, strings.Join(plans.Names(), ", "), document.Meant(e.name, plans.Names()))
}

// UnknownFile says that what is to be checked is not there: a command called wrongly.
type UnknownFile struct{ name string }

func (e *UnknownFile) Error() string {
	return fmt.Sprintf("%q: neither a file, nor a plan that is built in (%s), nor a topology such as ring:4%s",
		e.name, strings.Join(plans.Names(), ", "), document.Meant(e.name, plans.Names()))
}

// ReadPlan reads a plan by its name if it is built in, else from a file.
func ReadPlan(name string) (*plan.Plan, error) {
	file, text, err := PlanText(name)
	if err != nil {
		return nil, err
	}
	return plan.Parse(file, text)
}

// PlanText returns a plan as it is written, and the name of its file.
func PlanText(name string) (file string, text []byte, err error) {
	if slices.Contains(plans.Names(), name) {
		text, err = plans.Read(name)
		return name + ".yaml", text, err
	}
	text, err = document.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, &UnknownPlan{name}
	case err != nil:
		return "", nil, fmt.Errorf("read the plan: %w", err)
	}
	return name, text, nil
}

// ReadHead reads a plan as ReadPlan does, and for what it was made.
func ReadHead(name string) (*plan.Plan, planning.Head, error) {
	source, text, err := PlanText(name)
	if err != nil {
		return nil, planning.Head{}, err
	}
	return planning.ReadHead(source, text)
}
