package run

import (
	"log/slog"
	"strings"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// announce logs how a plan differs from the one that it replaces, and why it
// came into force if nobody has asked for it.
func announce(log *slog.Logger, old, current *members.Current) {
	if old == nil || current.Generation == old.Generation {
		return
	}
	var changes []string
	for _, c := range plan.Diff(old.InForce(), current.InForce()) {
		changes = append(changes, c.String())
	}
	attrs := []any{"plan", current.InForce().Name, "generation", current.Generation, "changes", strings.Join(changes, "; ")}
	if current.Why != "" {
		attrs = append(attrs, "reason", current.Why)
	}
	log.Info("another plan is in force", attrs...)
}
