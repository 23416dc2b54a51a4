package command

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/deploy/export"
	"github.com/weft-sdn/weft/deploy/plans"
)

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a plan as what orchestrators take",
		Long: `Write a plan, built in or a file, as what orchestrators take: a Compose file, a
Helm chart for Kubernetes, or packages for ETSI OSM. All run the one container
image, which make image builds. The same plan gives the same files, and none of
them holds a secret: certificates and the token of the northbound are handed
over as each orchestrator has it. docs/orchestration.md says more.`,
		Example: `  weft export compose split --dir split
  weft export helm scale --dir chart --image registry.example.org/weft:1.0
  weft export osm multi --dir osm`,
	}
	cmd.AddCommand(exportCompose(), exportHelm(), exportOSM())
	return cmd
}

// exportFlags are those of all exports.
type exportFlags struct {
	dir, image, bus string
	force           bool
	out             cli.Output
}

// exported is the answer of an export.
type exported struct {
	Directory string   `json:"directory"`
	Plan      string   `json:"plan"`
	Files     []string `json:"files"`
	Next      []string `json:"next"` // command lines
}

// exporter is one kind of export.
type exporter struct {
	kind    string // the subcommand
	short   string
	long    string
	bus     string // what --bus is by default
	files   func(export.Config) ([]export.File, error)
	next    func(e *exported, f *exportFlags) []string
	example string
}

func (x *exporter) command(f *exportFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: x.kind + " PLAN", Short: x.short, Long: x.long, Example: x.example,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return plans.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := planner.ReadPlan(args[0])
			if err != nil {
				return err
			}
			if err := planner.Fits(p); err != nil {
				return err
			}
			if f.dir == "" {
				f.dir = p.Name + "-" + x.kind
			}
			files, err := x.files(export.Config{Plan: p, Specs: planner.AllSpecs(), Image: f.image, BusURL: f.bus, Version: run.Build().Version})
			if err != nil {
				return err
			}
			if err := export.Write(f.dir, files, export.Force(f.force)); err != nil {
				return err
			}
			e := &exported{Directory: f.dir, Plan: p.Name}
			for _, file := range files {
				e.Files = append(e.Files, file.Path)
			}
			e.Next = x.next(e, f)
			return f.out.Print(cmd, e, func(t *cli.Table) {
				for _, name := range e.Files {
					fmt.Fprintln(t, filepath.Join(f.dir, filepath.FromSlash(name)))
				}
				fmt.Fprintln(t, "\nnext:")
				for _, line := range e.Next {
					fmt.Fprintln(t, "  "+line)
				}
			})
		},
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "directory to write to (default PLAN-"+x.kind+")")
	cmd.Flags().StringVar(&f.image, "image", "weft:latest", "reference of the container image, as NAME:TAG")
	cmd.Flags().StringVar(&f.bus, "bus", "", "URL of the NATS servers, if the plan names none (default "+x.bus+")")
	cmd.Flags().BoolVar(&f.force, "force", false, "write into a directory that is not empty; files of the same names are replaced")
	cmd.MarkFlagDirname("dir")
	f.out.Flag(cmd)
	return cmd
}

func exportCompose() *cobra.Command {
	x := exporter{
		kind: "compose", short: "Write a Compose file: a container for each process", files: export.Compose,
		bus: "one in a container of its own",
		long: `Write a Compose file: a container for each process of the plan, one that puts
the plan into force, and one for NATS unless --bus or the plan names another.
Processes know each other by certificates of weft certs, as files beside it.`,
		example: `  weft export compose split --dir split
  weft export compose mine.yaml --dir mine --image registry.example.org/weft:1.0 --bus tls://bus.example.org:4222`,
		next: func(e *exported, f *exportFlags) []string {
			certs := filepath.Join(f.dir, "certs")
			list := []string{
				"make image",
				"weft certs init --dir " + certs,
				"weft certs plan " + filepath.Join(f.dir, "plan.yaml") + " --dir " + certs,
			}
			if slices.Contains(e.Files, "nats.conf") {
				list = append(list, "weft certs issue nats --dir "+certs+" --host nats")
			}
			token := filepath.Join(f.dir, "gateway.token")
			return append(list,
				"(umask 077; openssl rand -hex 16 > "+token+")",
				"sudo find "+certs+" "+token+" -type f ! -name ca.key -exec chown 65534:65534 {} +",
				"docker compose -f "+filepath.Join(f.dir, "docker-compose.yaml")+" up -d",
				`weft get workers --token "$(sudo cat `+token+`)"`)
		},
	}
	return x.command(&exportFlags{})
}

func exportHelm() *cobra.Command {
	x := exporter{
		kind: "helm", short: "Write a Helm chart for Kubernetes", files: export.Helm,
		bus: "tls://nats:4222",
		long: `Write a Helm chart for Kubernetes 1.28 and later: a Deployment for each worker
of the plan, a StatefulSet for those with replicas and those that hold the
sessions of a partition's switches; Services, NetworkPolicies,
PodDisruptionBudgets, and autoscaling (off by default) between one instance and
as many as the plan has. NATS is outside, at --bus. Certificates come by
Secrets, made by hand or by cert-manager.`,
		example: `  weft export helm split --dir chart
  weft export helm scale --dir chart --image registry.example.org/weft:1.0 --bus tls://nats.example.org:4222`,
		next: func(e *exported, f *exportFlags) []string {
			return []string{
				"helm lint " + f.dir,
				"weft certs init --dir certs",
				"weft certs plan " + filepath.Join(f.dir, "files", "plan.yaml") + " --dir certs",
				`for c in certs/*.crt; do n=$(basename $c .crt); [ $n = ca ] || kubectl create secret generic weft-$n --from-file=tls.crt=$c --from-file=tls.key=certs/$n.key --from-file=ca.crt=certs/ca.crt; done`,
				`kubectl create secret generic weft-gateway-token --from-literal=token="$(openssl rand -hex 16)"`,
				"helm install weft " + f.dir,
			}
		},
	}
	return x.command(&exportFlags{})
}

func exportOSM() *cobra.Command {
	f := &exportFlags{}
	var pack bool
	x := exporter{
		kind: "osm", short: "Write packages for ETSI OSM",
		bus: "tls://nats:4222",
		long: `Write packages for ETSI OSM (SOL006 descriptors): a network function for each
worker of the plan, deployed by a Helm chart within the package, with a scaling
aspect if the plan has replicas of it; and a network service for the plan, or
one for each of its partitions. For replicas there are parameters for ns-create.`,
		files: func(c export.Config) ([]export.File, error) { return export.OSM(c, export.Pack(pack)) },
		example: `  weft export osm multi --dir osm
  weft export osm scale --dir osm --pack`,
		next: func(e *exported, f *exportFlags) []string {
			var list []string
			for _, suffix := range []string{"_knf", "_ns"} {
				kind := map[string]string{"_knf": "nfpkg", "_ns": "nspkg"}[suffix]
				for _, name := range e.Files {
					base := strings.TrimSuffix(name, ".tar.gz")
					folder, file, nested := strings.Cut(name, "/")
					switch {
					case pack && base != name && strings.HasSuffix(base, suffix):
						list = append(list, "osm "+kind+"-create "+filepath.Join(f.dir, name))
					case !pack && nested && file == "checksums.txt" && strings.HasSuffix(folder, suffix):
						list = append(list, "osm "+kind+"-create "+filepath.Join(f.dir, folder))
					}
				}
			}
			for _, name := range e.Files {
				if base, ok := strings.CutSuffix(name, "-1.yaml"); ok {
					service := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(base, "params"), "-"), "weft-"+strings.ToLower(e.Plan))
					list = append(list, "osm ns-create --ns_name "+service+" --nsd_name "+service+"_ns --vim_account VIM --config_file "+filepath.Join(f.dir, name))
				}
			}
			return list
		},
	}
	cmd := x.command(f)
	cmd.Flags().BoolVar(&pack, "pack", false, "write each package as a tar.gz")
	return cmd
}
