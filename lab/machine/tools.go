package machine

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debianPackage names, for each tool a lab runs, the Debian package with it.
func debianPackage(tool string) string {
	switch tool {
	case "nft":
		return "nftables"
	case "iperf3":
		return "iperf3"
	case "prlimit":
		return "util-linux"
	}
	return "openvswitch-switch"
}

// NeedTools reports the tools that are not installed, and how to get them.
func NeedTools(tools ...string) error {
	var missing, packages []string
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		missing = append(missing, tool)
		if p := debianPackage(tool); !strings.Contains(" "+strings.Join(packages, " ")+" ", " "+p+" ") {
			packages = append(packages, p)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%s not found in PATH: install with `apt-get install --no-install-recommends %s`",
		strings.Join(missing, ", "), strings.Join(packages, " "))
}

func NeedRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a lab needs root to make network namespaces: run this with sudo")
	}
	return nil
}
