// Package agents has the programs of a lab's hosts that are agents: the proxies
// nginx, HAProxy, nghttpx and Envoy, and Go's own, which stand between the
// network functions of a 5G core as a service communication proxy does.
//
// An agent is independent, in a host of its own, one more hop away; or there are
// two on each way, co-located: one in the consumer's host, to which the consumer
// speaks, and one in the producer's.
//
// Only experiments import it.
package agents

import (
	"context"
	"embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weft-sdn/weft/lab/topology"
)

// A Kind is a proxy.
type Kind string

// The kinds of agents. Go is that of weft itself.
const (
	Nginx   Kind = "nginx"
	HAProxy Kind = "haproxy"
	Nghttpx Kind = "nghttpx"
	Envoy   Kind = "envoy"
	Go      Kind = "go"
)

// Kinds are all there are.
func Kinds() []Kind { return []Kind{Nginx, HAProxy, Nghttpx, Envoy, Go} }

//go:embed *.sh
var scripts embed.FS

// Scripts is a directory with a script for each kind.
type Scripts string

// Write writes the scripts into a directory, which outlives the labs that use them.
func Write(dir string) (Scripts, error) {
	if err := os.CopyFS(dir, scripts); err != nil {
		return "", fmt.Errorf("write the agents' scripts: %w", err)
	}
	dir, err := filepath.Abs(dir)
	return Scripts(dir), err
}

func (s Scripts) path(k Kind) string { return filepath.Join(string(s), string(k)+".sh") }

// Check says how to install what the agents of a kind need; nil if it is there.
func (s Scripts) Check(ctx context.Context, k Kind) error {
	if k == Go {
		return nil // the lab's programs have weft
	}
	cmd := exec.CommandContext(ctx, "sh", s.path(k))
	cmd.Env = append(os.Environ(), "CHECK=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("agent %s: %s (%w)", k, strings.TrimSpace(string(out)), err)
	}
	return nil
}

// Program returns an agent that passes on what comes to an address to others by
// turns.
func (s Scripts) Program(k Kind, listen netip.AddrPort, backends ...netip.AddrPort) topology.Program {
	to := make([]string, len(backends))
	for i, b := range backends {
		to[i] = b.String()
	}
	return topology.Program{
		Name: string(k), Command: topology.Quote("sh", s.path(k)), Restart: topology.RestartAlways,
		Env: map[string]string{"LISTEN": listen.String(), "BACKENDS": strings.Join(to, " ")},
	}
}

// Behind returns an agent that takes what another of its kind passes on.
func (s Scripts) Behind(k Kind, listen netip.AddrPort, backends ...netip.AddrPort) topology.Program {
	p := s.Program(k, listen, backends...)
	p.Env["BEHIND"] = "yes"
	return p
}
