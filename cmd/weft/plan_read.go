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
		return nil, fmt.Errorf("no plan %q: it is neither built in (%s) nor a file", name, strings.Join(plans.Names(), ", "))
	case err != nil:
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return plan.Parse(name, text)
}
