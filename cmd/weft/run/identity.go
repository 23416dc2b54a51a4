package run

import (
	"os"

	"github.com/weft-sdn/weft/deploy/certs"
)

// loadIdentity reads the certificate of a process; nil if there is no directory.
func loadIdentity(dir, process string) (*certs.Identity, error) {
	if dir == "" {
		return nil, nil
	}
	return certs.Load(dir, process)
}

// secureIn returns a function that reports whether a process has a certificate
// in a directory, and what is wrong with it.
func secureIn(dir string) func(process string) (bool, error) {
	return func(process string) (bool, error) {
		identity, err := loadIdentity(dir, process)
		return identity != nil, err
	}
}

func machineName() string {
	name, _ := os.Hostname() // without one, no plan can name this machine
	return name
}
