package paths

import "fmt"

// Config says which part of the network is this instance's. A plan whose
// partitions are parts of one network sets it for paths in workers of a
// partition; otherwise it is empty, and the instance computes paths of all
// switches.
type Config struct {
	// Partition is the name of the partition whose paths these are. Empty: the
	// whole network's.
	Partition string `yaml:"partition"`
	// Switches lists the partition's switches: DPIDs and ranges of them in
	// hexadecimal digits (10, 1-8), or rest for all that Elsewhere does not list.
	Switches []string `yaml:"switches"`
	// Elsewhere lists the switches of the other partitions, by their names.
	Elsewhere map[string][]string `yaml:"elsewhere"`
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	if c.Partition == "" {
		if len(c.Switches) > 0 || len(c.Elsewhere) > 0 {
			return fmt.Errorf("partition: empty, with switches or elsewhere set: want the partition's name, or neither")
		}
		return nil
	}
	if _, there := c.Elsewhere[c.Partition]; there {
		return fmt.Errorf("elsewhere: %s is the partition itself; want others only", c.Partition)
	}
	_, err := c.partitions()
	return err
}
