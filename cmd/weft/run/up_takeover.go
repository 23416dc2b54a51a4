package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/deploy/supervisor"
	"github.com/weft-sdn/weft/plan"
)

// survivors returns the processes of a plan that have outlived their supervisor
// on a data directory. They hold the addresses of the controller.
func survivors(dir string) ([]supervisor.Survivor, error) {
	return supervisor.Survivors(workersDirectory(dir))
}

// takeOver continues the plan in force of a data directory, whose processes
// have outlived their supervisor, with the flags of that supervisor. Flags that
// say what to run are refused: they are another plan's.
func (o *UpOptions) takeOver(ctx context.Context, cmd *cobra.Command, dir string, list []supervisor.Survivor) error {
	for _, flag := range []string{"config", "services", "listen", "http", "ryu", "set"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("processes of a plan still run on %s without their supervisor: %s; weft up --data-dir %s, without --%s, takes them over; to run something else, end them first (kill %s)", dir, named(list), dir, flag, pids(list))
		}
	}
	p := &plan.Plan{}
	if err := o.resume(cmd, p, list[0].Args); err != nil {
		return err
	}
	k, all, err := o.keeper(cmd, dir)
	if err != nil {
		return err
	}
	k.log.Info("processes have outlived their supervisor; taking them over", "processes", named(list))
	return k.up(ctx, cmd, p, all, func() (*plan.Plan, error) { return k.resume(ctx) })
}

// resume sets the flags that the command line of a process has from its
// supervisor, unless they are given, and where the bus is.
func (o *UpOptions) resume(cmd *cobra.Command, p *plan.Plan, args []string) error {
	var own bool // the supervisor holds the bus itself
	var url string
	for i := 0; i+1 < len(args); i++ {
		value := args[i+1]
		switch args[i] {
		case "--bus":
			url = value
		case "--bus-token-file":
			own = true
		case "--bus-credentials":
			p.Bus.Credentials = value
		case "--set":
			o.Set = append(o.Set, value)
		case "--certs", "--log-level", "--trace", "--trace-one-in":
			if name := strings.TrimPrefix(args[i], "--"); !cmd.Flags().Changed(name) {
				if err := cmd.Flags().Set(name, value); err != nil {
					return err
				}
			}
		default:
			continue
		}
		i++
	}
	if !own {
		p.Bus.URL = url
	}
	return nil
}

// resume returns the plan in force.
func (k *keeper) resume(ctx context.Context) (*plan.Plan, error) {
	current, _, err := k.directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, errors.New("processes of a plan still run on this data directory, but no plan is in force there; name the plan: weft up PLAN")
	}
	k.log.Info("plan in force is continued", "plan", current.InForce().Name, "generation", current.Generation)
	return current.InForce(), nil
}

// named names processes.
func named(list []supervisor.Survivor) string {
	var names []string
	for _, s := range list {
		names = append(names, fmt.Sprintf("%s (process %d)", s.Name, s.PID))
	}
	return cli.FirstFew(names)
}

// pids returns the numbers of processes as arguments of kill.
func pids(list []supervisor.Survivor) string {
	var numbers []string
	for _, s := range list {
		numbers = append(numbers, fmt.Sprint(s.PID))
	}
	return strings.Join(numbers, " ")
}
