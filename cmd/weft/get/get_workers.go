package get

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getWorkers(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "workers",
		Short: "List the controller's processes",
		Long: `List the processes of the controller, each asked for a sign of life at this
moment: up, moving (it has not carried out the plan in force yet), starting,
draining (it finishes what it has begun), unresponsive, down, or backing-off (it
keeps dying). In parentheses stands the process, if its name is another.
SERVICES that are not ready carry their state, those with a standby in the plan
whether they are master or stand by; apps that are attached to a worker are
listed behind them. RESTARTS and LAST EXIT are the supervisor's; a worker that
somebody runs by hand has none. The last line is about the servers that keep the
controller's state: how many are up and have all of it, whether they have a
quorum (more than half of the copies can be written), and how many copies there
are; with -o json, that is store.`,
		Example: `  weft get workers
  weft get workers -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { WorkersTable(t, m) }}, err
	})
}

// WorkersTable lists processes for people.
func WorkersTable(t *cli.Table, m *api.ListWorkersResponse) {
	t.Row("WORKER", "STATE", "PID", "MACHINE", "ANSWER ms", "RESTARTS", "STARTED", "SERVICES", "LAST EXIT")
	for _, w := range m.GetWorkers() {
		name := w.Instance
		switch {
		case name == "":
			name = "(" + w.Process + ")"
		case name != w.Process:
			name += " (" + w.Process + ")"
		}
		var list []string
		for _, s := range w.Services {
			switch {
			case s.State == "ready" && s.Role == "":
				list = append(list, s.Name)
			case s.State == "ready":
				list = append(list, fmt.Sprintf("%s (%s)", s.Name, s.Role))
			default:
				list = append(list, fmt.Sprintf("%s (%s)", s.Name, s.State))
			}
		}
		for _, a := range w.Apps {
			list = append(list, fmt.Sprintf("%s (app)", a.Name))
		}
		state := w.State
		if !w.Current && state == "up" && m.Generation > 0 {
			state = "moving"
		}
		t.Row(name, state, w.Pid, w.Machine, cli.Millis(w.AnswerUs), w.Restarts, cli.When(w.Started), strings.Join(list, " "), w.LastExit)
	}
	if m.Store != nil {
		fmt.Fprintln(t, "store: "+storeLine(m.Store))
	}
}

// storeLine describes how the controller's state is kept.
func storeLine(s *api.StoreState) string {
	quorum := "quorum"
	if !s.Quorum {
		quorum = "no quorum"
	}
	line := fmt.Sprintf("%s up, %s, %s", countOf(s.Servers, "server"), quorum, countOf(s.Replicas, "replica"))
	if s.Replicas < s.Wanted {
		line += fmt.Sprintf(" of %d", s.Wanted)
	}
	return line
}

// countOf writes a number of things.
func countOf(n uint32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
