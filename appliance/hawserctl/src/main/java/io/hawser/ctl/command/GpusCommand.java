package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.LivePicture;
import io.hawser.ctl.terminal.Table;
import picocli.CommandLine.Command;

/** {@code hawserctl gpus}. */
@Command(name = "gpus", description = "Lists the GPUs: memory, utilisation, temperature, health.")
public final class GpusCommand extends ApiCommand {
    @Override
    void run(ApiClient client) {
        print(client.get("/api/v1/gpus"), answer -> {
            Table table = new Table(">GPU", "NAME", "UUID", ">MEMORY", ">USED", ">RESERVED", ">UTIL", ">TEMP", ">POWER",
                ">VGPUS", ">SESSIONS", "HEALTH");
            for (Item gpu : Item.list(answer)) {
                table.row(gpu.number("index"), gpu.text("name"), gpu.text("uuid"), Units.size(gpu.number("totalBytes")),
                    gpu.has("memoryUsedBytes") ? Units.size(gpu.number("memoryUsedBytes")) : "-",
                    Units.size(gpu.number("reservedBytes")), LivePicture.figure(gpu, "utilizationPercent", "%"),
                    LivePicture.figure(gpu, "temperatureCelsius", " C"),
                    LivePicture.figure(gpu, "powerWatts", " W"), gpu.number("vgpus"),
                    gpu.number("sessions"), gpu.text("health") + (gpu.text("healthDetail").isEmpty() ? ""
                        : ": " + gpu.text("healthDetail")));
            }
            return table;
        });
    }
}
