#include "transports/ibverbs/completion_vector.h"

#include <gtest/gtest.h>

#include <string>

#include "transports/common/temp_tree.h"

namespace verbscope {
namespace {

class CompletionVectorTest : public testing::Test {
 protected:
  CompletionVectorTest() {
    for (const char* irq : {"41", "42", "43", "44"}) {
      tree_.Write(std::string("sys/class/infiniband/mlx5_0/device/msi_irqs/") + irq, "msix\n");
    }
    tree_.Write("proc/interrupts",
                "            CPU0       CPU1\n"
                "  9:          0          0  IR-IO-APIC    9-fasteoi   acpi\n"
                " 40:          7          0  PCI-MSI 1-edge      mlx5_comp1@pci:0000:5e:00.0\n"
                " 41:          1          2  PCI-MSI 2-edge      mlx5_async@pci:0000:3b:00.0\n"
                " 42:          1          2  PCI-MSI 3-edge      mlx5_comp1@pci:0000:3b:00.0\n"
                " 43:          1          2  PCI-MSI 4-edge      mlx5_comp11@pci:0000:3b:00.0\n"
                " 44:          1          2  PCI-MSI 5-edge      mlx5_comp2@pci:0000:3b:00.0\n"
                "NMI:          0          0   Non-maskable interrupts\n");
    tree_.Write("proc/irq/42/effective_affinity_list", "5\n");
    tree_.Write("proc/irq/42/smp_affinity_list", "0-7\n");
    tree_.Write("proc/irq/43/smp_affinity_list", "6\n");
    tree_.Write("proc/irq/44/smp_affinity_list", "0-7\n");
    paths_ = {.sysfs = tree_.root() + "/sys", .dev = "", .proc = tree_.root() + "/proc"};
  }

  TempTree tree_;
  SystemPaths paths_;
};

TEST_F(CompletionVectorTest, TheInterruptOfThisDeviceAndVectorIsTheOneThatCounts) {
  EXPECT_EQ(CompletionVectorCore(paths_, "mlx5_0", 1), 5);
  EXPECT_EQ(CompletionVectorCore(paths_, "mlx5_0", 11), 6);
}

TEST_F(CompletionVectorTest, WhatTheHostDoesNotShowIsNotGuessed) {
  EXPECT_EQ(CompletionVectorCore(paths_, "mlx5_0", 0), std::nullopt) << "no such vector";
  EXPECT_EQ(CompletionVectorCore(paths_, "mlx5_0", 2), std::nullopt) << "several CPUs";
  EXPECT_EQ(CompletionVectorCore(paths_, "rxe0", 0), std::nullopt) << "no interrupts of its own";
  paths_.proc = tree_.root() + "/nothing";
  EXPECT_EQ(CompletionVectorCore(paths_, "mlx5_0", 1), std::nullopt);
}

}  // namespace
}  // namespace verbscope
