// Package testdir gives tests a temporary folder in memory. Tests of code that runs git make and remove thousands of
// files a second, and ext4 passes over the inodes of the last minute's removed files, one by one, whenever it makes a
// file. Together with its journal that is a quarter of the processor time of such tests. With -tags nightly the tests
// work on the disk that users have. Start at InMemory.
package testdir
