package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"weft/deploy/plans"
	"weft/plan"
)

// unknownPlan says that there is no plan of a name: a command called wrongly.
type unknownPlan struct{ name string }

func (e *unknownPlan) Error() string {
	return fmt.Sprintf("no plan %q: it is neither built in (%s) nor a file", e.name, strings.Join(plans.Names(), ", "))
}

// readPlan reads a plan by its name if it is built in, else from a file.
func readPlan(name string) (*plan.Plan, error) {
	if slices.Contains(plans.Names(), name) {
		text, err := plans.Read(name)
		if err != nil {
			return nil, err
		}
		return plan.Parse(name+".yaml", text)
	}
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &unknownPlan{name}
	case err != nil:
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return plan.Parse(name, text)
}
