// Package steward tests the supervisor through the built program: tasks, their plans and loops, what
// people are asked, and what is left when it is killed.
package steward
