package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"

	"github.com/spf13/cobra"
)

// planned returns a plan, and the settings that flags make for it, if a controller can be
// started with them.
func (o *UpOptions) planned(cmd *cobra.Command, name string) (*plan.Plan, []string, error) {
	if o.Config != "" || len(o.Services) > 0 {
		return nil, nil, cli.Usagef(cmd, "--config and --services are for weft up without a plan; put config: and workers: into the plan")
	}
	p, err := planner.ReadPlan(name)
	if err != nil {
		return nil, nil, err
	}
	all := services.All(gateway.Process{})
	if err := config.CheckPlan(p, all); err != nil {
		return nil, nil, err
	}
	set, err := o.settings(p)
	if err == nil {
		err = config.CheckPlan(p, all, overrides(set)...)
	}
	if err != nil {
		return nil, nil, cli.Usagef(cmd, "%v", err)
	}
	if _, err := loadIdentity(o.certs, "supervisor"); err != nil {
		return nil, nil, err
	}
	dir, err := DataPath(o.DataDir)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, bus.LockFile)); p.Bus.URL == "" && errors.Is(err, fs.ErrNotExist) { // it is the first plan there
		first, err := members.Succeed(nil, p, all)
		if err == nil {
			err = deploy.Startable(first, machineName(), secureIn(o.certs))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return p, set, nil
}

// settings returns the settings that flags make, for every process. Those of
// where to listen make sense only once.
func (o *UpOptions) settings(p *plan.Plan) ([]string, error) {
	listen, err := ListenAddresses(o.Listen)
	if err = errors.Join(err, o.checkHTTP()); err != nil {
		return nil, err
	}
	if len(p.Partitions) > 1 && (len(listen) > 0 || o.HTTP != "" || o.ryu != "") {
		return nil, errors.New("--listen, --http and --ryu are for plans with one southbound and one gateway; write the addresses into the plan")
	}
	set := slices.Clone(o.Set)
	if len(listen) > 0 {
		list, err := json.Marshal(listen)
		if err != nil {
			return nil, err
		}
		set = append(set, "southbound.listen="+string(list))
	}
	if o.HTTP != "" {
		set = append(set, "gateway.listen="+o.HTTP)
	}
	if o.ryu != "" {
		set = append(set, "ryu.listen="+o.ryu)
	}
	return set, nil
}

// overrides returns assignments of flags as what changes settings.
func overrides(set []string) (list []config.Override) {
	for _, s := range set {
		list = append(list, config.Override(s))
	}
	return list
}

// checkFlags returns the level of the log and where switches connect, or what is wrong
// with flags or with the limits of this process.
func (o *UpOptions) checkFlags(cmd *cobra.Command) (level slog.Level, listen []string, err error) {
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return level, nil, cli.Usagef(cmd, "--log-level %q; allowed: debug, info, warn, error", o.LogLevel)
	}
	if o.quiet {
		level = max(level, slog.LevelWarn)
	}
	listen, err = ListenAddresses(o.Listen)
	if err = errors.Join(err, o.checkHTTP(), o.trace.check()); err != nil {
		return level, nil, cli.Usagef(cmd, "%v", err)
	}
	return level, listen, enoughFiles()
}

// ListenAddresses brings the values of --listen into the form of the
// configuration.
func ListenAddresses(flags []string) ([]string, error) {
	var list []string
	for _, l := range flags {
		network, address, _ := strings.Cut(l, ":")
		switch {
		case network == "unix" && address != "":
		case (network == "tcp" || network == "tls") && hostPort(address):
		case network != "tcp" && hostPort(l):
			l = "tcp:" + l
		default:
			return nil, fmt.Errorf("--listen %q; want HOST:PORT, tcp:HOST:PORT, tls:HOST:PORT or unix:PATH", l)
		}
		list = append(list, l)
	}
	return list, nil
}

// checkHTTP says what is wrong with --http and --ryu.
func (o *UpOptions) checkHTTP() error {
	for _, f := range []struct{ flag, value string }{{"http", o.HTTP}, {"ryu", o.ryu}} {
		if f.value != "" && !hostPort(f.value) {
			return fmt.Errorf("--%s %q: want HOST:PORT, such as 127.0.0.1:8181", f.flag, f.value)
		}
	}
	return nil
}

func hostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}
