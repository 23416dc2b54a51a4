//go:build long

package lab

// How many labs of each kind TestApplyDrawn brings up, and how often it changes each.
const drawnLabs, drawnSteps = 10, 5
