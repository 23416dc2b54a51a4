package heartbeat

import (
	"fmt"
	"time"
)

// Config is how often switches are asked, and when an answer is too late.
type Config struct {
	// Rate is how many times a second each switch is asked: 1 to 100.
	Rate float64 `yaml:"rate"`
	// Deadline is how long after it was due a beat may be answered. 0 means
	// until the next is due, 1/rate; it cannot be longer than that.
	Deadline time.Duration `yaml:"deadline"`
	// LostAfter is how many beats in a row a switch misses before it counts as
	// lost. Its connection is not ended for that: southbound.dead_after is for
	// when it is silent altogether.
	LostAfter int `yaml:"lost_after"`
}

func defaults() *Config { return &Config{Rate: 1, LostAfter: 3} }

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	switch {
	case !(c.Rate >= 1 && c.Rate <= 100):
		return fmt.Errorf("rate: %v: want 1 to 100 beats per second", c.Rate)
	case c.Deadline != 0 && (c.Deadline < time.Millisecond || c.Deadline > c.interval()):
		return fmt.Errorf("deadline: %v: want 1ms to %v, which is 1/rate, or 0 for that", c.Deadline, c.interval())
	case c.LostAfter < 1 || c.LostAfter > 1000:
		return fmt.Errorf("lost_after: %d: want 1 to 1000", c.LostAfter)
	}
	return nil
}

// interval is the time from one beat of a switch to its next.
func (c *Config) interval() time.Duration { return time.Duration(float64(time.Second) / c.Rate) }

// deadline is how long a beat may take.
func (c *Config) deadline() time.Duration {
	if c.Deadline != 0 {
		return c.Deadline
	}
	return c.interval()
}
